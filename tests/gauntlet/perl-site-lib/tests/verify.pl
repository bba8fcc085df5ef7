use strict;
use warnings;
my %seen;
open(my $log, "<", "/tests/pristine/access.log") or die;
while (<$log>) { my @field = split; $seen{$field[0]} = 1 if $field[3] >= 500 }
open(my $got, "<", "/app/errors.txt") or exit 1;
my $text = join("", <$got>);
exit($text eq join("", map { "$_\n" } sort keys %seen) ? 0 : 1);
