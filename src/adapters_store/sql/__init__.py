"""
The parts that both databases share: records as rows, statements, queries and the unit of work.
"""
