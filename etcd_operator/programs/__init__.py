"""Programs that run in pods of their own, or beside a member."""
