# Transactions, errors, types and reconnecting through Perl's DBI with DBD::mysql.
# usage: dbi.pl HOST PORT DATABASE
use strict;
use warnings;
use utf8;
use DBI;

my ($host, $port, $database) = @ARGV;

sub open_one {
	return DBI->connect("DBI:mysql:host=$host;port=$port;database=$database", 'root', '',
		{ RaiseError => 1, PrintError => 0, mysql_enable_utf8mb4 => 1, mysql_server_prepare => $_[0], AutoCommit => $_[1] });
}

sub check {
	my ($what, $got, $want) = @_;
	die "$what: " . ($got // 'undef') . ", want $want\n" if !defined $got || $got ne $want;
}

sub fails {
	my ($number, $f) = @_;
	eval { $f->(); 1 } and die "error $number was expected\n";
	check("error", $DBI::err, $number);
}

for my $prepare (0, 1) { # by the driver, and by the server
	my ($one, $two) = (open_one($prepare, 0), open_one($prepare, 1));
	$one->do('drop table if exists t');
	$one->do('create table t (id int primary key, s varchar(50) not null, d decimal(10,2), b varbinary(20), at datetime(3))');
	my $insert = $one->prepare('insert into t values (?, ?, ?, ?, ?)');
	my @row = (1, "zä😀'", '-12.50', "\x00'\\", '2024-02-29 23:59:59.123');
	$insert->execute(@row);
	check('not committed', $two->selectrow_array('select count(*) from t'), 0);
	$one->rollback;
	check('rolled back', $one->selectrow_array('select count(*) from t'), 0);
	$insert->execute(@row);
	$one->do('savepoint a');
	$one->do('delete from t');
	$one->do('rollback to savepoint a');
	$one->commit;
	my @got = $two->selectrow_array('select * from t where id = ?', undef, 1);
	check("column $_", $got[$_], $row[$_]) for 0 .. $#row;
	fails(1062, sub { $insert->execute(@row) });
	fails(1048, sub { $insert->execute(2, undef, undef, undef, undef) });
	fails(1146, sub { $one->do('select * from missing') });
	check('rows changed', $one->do('update t set d = d + 1'), 1);
	$one->commit;
	check('after errors', $two->selectrow_array('select d from t'), '-11.50');
	$one->rollback;
	my ($id) = $one->selectrow_array('select connection_id()');
	$two->do("kill $id");
	eval { $one->do('select 1'); 1 } and die "a killed connection answers\n";
	$one->{InactiveDestroy} = 1;
	check('reconnected', open_one($prepare, 1)->selectrow_array('select count(*) from t'), 1);
}
print "ok\n";
