double() { echo $(($1 * 2)); }
triple() { echo $(($1 * 3)); }
