-- What a column holds, a body written from now on does not repeat; a row of variables says something.

DELETE FROM execution_variables WHERE body = '{}';
