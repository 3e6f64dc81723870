#include "p_environment.h"
BEGIN
  RR(2, add, 2, 1, 1)
  RR(5, add, 3, 1, 1)
END
