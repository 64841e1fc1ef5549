-- Bodies no longer repeat what columns hold (those already stored still do), and empty variables have no row.

DELETE FROM execution_variables WHERE body = '{}';
