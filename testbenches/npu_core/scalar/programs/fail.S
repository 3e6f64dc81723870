#include "p_environment.inc"
BEGIN
  RR(2, add, 2, 1, 1)
  RR(5, add, 3, 1, 1)
END
