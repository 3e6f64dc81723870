// Of the host: empty here.
#pragma once
