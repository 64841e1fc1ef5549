"""
The expression language inside `{{ }}`: what definitions need of minijinja's.

Paths, subscripts, comparison, arithmetic, `and`, `or`, `not`, `… if … else …`, `is defined` and the
filters that `docs/definitions.md` names; no calls, no statements. Whatever else a program needs, it
writes as a code step. Decision 8 says why this is not the library itself.

Everything is evaluated over JSON in this process with a budget: no code runs, nothing is
undefined without an error, text cannot be multiplied, and no operation makes more than the
budget. `tokens` and `parse` read the text, `nodes` evaluate it, `filters` and `operators` are the
tables of what there is.
"""
