use strict;
use warnings;

sub lines_of {
    open(my $file, '<', $_[0]) or die "$_[0]: $!\n";
    return map { chomp; $_ } <$file>;
}

my %seen;
for (lines_of('/tests/pristine/access.log')) {
    my ($address, undef, undef, $status) = split ' ';
    $seen{$address} = 1 if $status >= 500;
}
my @wanted = sort keys %seen;
die "errors.txt is a link\n" if -l '/app/errors.txt' || !-f '/app/errors.txt';
my @found = lines_of('/app/errors.txt');
die "another number of addresses\n" if @found != @wanted;
$found[$_] eq $wanted[$_] or die "line $_: $found[$_]\n" for 0 .. $#wanted;
