"""The caches on disk: many processes, killed processes, damaged files, unwritable places."""
