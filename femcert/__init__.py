"""femcert"""
