#!/bin/bash
# Faults that act on a node or its network: what began them dies at a step of their life (faults_kill.sh).
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/primitives/faults_kill.sh
kill_faults -vEx 'none|err-.*|hang|kill|server-.*'
