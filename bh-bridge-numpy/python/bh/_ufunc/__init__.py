"""Universal functions: how their types resolve, their compositions of operations, and their folds."""
