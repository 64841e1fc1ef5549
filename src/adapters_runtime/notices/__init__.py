"""The notifiers for mail, chats and signed webhooks, and the texts of notices."""
