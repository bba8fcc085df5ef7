# A book is closed within ten months.
opened=$(</app/opened) closing=$(</app/closing) || exit 1
months=$(((10#${closing:0:4} - 10#${opened:0:4}) * 12 + 10#${closing:4} - 10#${opened:4}))
((months >= 0 && months < 10))
