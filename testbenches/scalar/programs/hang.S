#include "p_environment.h"
BEGIN
spin: j spin
END
