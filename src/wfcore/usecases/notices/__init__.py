"""Notices to people: written in the unit of their fact, sent by a loop, listed by operators."""
