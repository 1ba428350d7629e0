"""What Muster depends on: pinned with hashes, and checked for known vulnerabilities."""
