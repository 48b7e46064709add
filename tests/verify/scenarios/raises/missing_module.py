"""A package that is not installed."""

import a_package_that_nobody_has

print(a_package_that_nobody_has)
