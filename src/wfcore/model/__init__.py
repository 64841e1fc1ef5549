"""
Frozen records: the knowledge of the domain. A record has no behaviour except statements about its
own value.
"""
