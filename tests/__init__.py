"""
The tests, in folders with the names of the packages that they test. `system` is for whole servers,
`proofs` for tests of tests and for attacks, `support` for what several folders build with.
"""
