"""
Tests of definitions: one execution each, in virtual time, with real templates and real control
flow. No code runs and nothing is connected to: what a step gives is written in the test.
"""
