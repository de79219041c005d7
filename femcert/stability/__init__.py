"""stability"""
