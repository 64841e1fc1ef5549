"""
Tests of definitions: one execution per scenario, in virtual time, with real templates and real
control flow. No code runs and no connection is made: the test file gives the result of each step.
"""
