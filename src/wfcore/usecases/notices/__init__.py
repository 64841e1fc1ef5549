"""Telling people: notices are written with the fact, sent by a loop, listed by operators."""
