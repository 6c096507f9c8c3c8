"""Contract suites for third parties: a store or a strategy that passes is one of ours."""
