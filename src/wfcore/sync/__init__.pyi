from wfserver.embedding.blocking import Door as Door
from wfserver.embedding.blocking import in_memory as in_memory
from wfserver.embedding.blocking import on_sqlite as on_sqlite
