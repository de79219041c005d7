"""residual"""
