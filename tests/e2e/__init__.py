"""A package, so that its fixture `stack` ends with its last test (scope `package`)."""
