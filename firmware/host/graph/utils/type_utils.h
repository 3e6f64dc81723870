#pragma once

#include "cm384/operator.h"
