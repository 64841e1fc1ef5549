-- What lets somebody in is sealed (decision 257): everybody signs in once more.

DELETE FROM sessions;
DELETE FROM login_links;
