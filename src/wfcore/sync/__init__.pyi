from wfserver.embedding.blocking import Handle as Handle
from wfserver.embedding.blocking import in_memory as in_memory
from wfserver.embedding.blocking import on_sqlite as on_sqlite
