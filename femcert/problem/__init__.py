"""Meshes, spaces, sensors, data and the model classes: an inverse problem as finite-element operators."""
