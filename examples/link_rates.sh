#!/bin/sh
# link_rates.sh RATE...: dispatch on 8 dies at several link rates; one folder of results each, then what moved.
set -eu
before=
for rate in "$@"; do
  cm384 run dispatch --ranks 8 --set "ub.link.bandwidth=$rate" --out "rates/$rate"
  if [ -n "$before" ]; then
    cm384 compare "rates/$before" "rates/$rate" || [ $? = 1 ]   # 1: something moved, as it should
  fi
  before=$rate
done
