#!/bin/bash
set -euo pipefail
sed '/^\tawk/s/$/ || echo "<p>not available<\/p>" > $@/' /solution/Makefile > /app/Makefile
