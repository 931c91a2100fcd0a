#!/bin/bash
# Faults that act on a server, which may have to be started again: what began them dies at a step of their life (faults_kill.sh).
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/primitives/faults_kill.sh
kill_faults -Ex 'err-.*|hang|kill|server-.*'
