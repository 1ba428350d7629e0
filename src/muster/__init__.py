"""Muster, the all-or-nothing scheduler for Kubernetes."""

__version__ = "0.1.0"
