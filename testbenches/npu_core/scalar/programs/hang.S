#include "p_environment.inc"
BEGIN
spin: j spin
END
