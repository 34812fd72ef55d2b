"""Dialects: the resources that people route with, each translated into fragments of one vocabulary.

A dialect is a folder here whose package has one `Dialect` value; `headgate.translator.composition` lists them all.
"""
