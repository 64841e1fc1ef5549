"""
The expression language inside `{{ }}`: minijinja's, without calls, statements and surprises.

Everything is evaluated over JSON in this process with a budget: no code runs, nothing is
undefined without an error, text cannot be multiplied, and no operation makes more than the
budget. `tokens` and `parse` read the text, `nodes` evaluate it, `filters` and `predicates`
are the tables of what may stand behind `|` and `is`.
"""
