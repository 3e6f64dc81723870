# A session with examples/kernels/increment.cpp; docs/debugging.md says how it is connected.
break Increment
continue
backtrace
info args
next
next
print tile
tbreak increment.cpp:19
continue
delete
continue
