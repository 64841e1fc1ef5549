"""Notifiers: mail, chats and signed webhooks, and the words of what they send."""
