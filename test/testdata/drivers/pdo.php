<?php
// Transactions, errors, types and reconnecting through PHP's PDO and mysqli.
// usage: pdo.php HOST PORT DATABASE
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
[, $host, $port, $database] = $argv;

function check($what, $got, $want) {
    if ($got !== $want) {
        fwrite(STDERR, "$what: " . var_export($got, true) . ", want " . var_export($want, true) . "\n");
        exit(1);
    }
}

function fails($number, $f) {
    try {
        $f();
    } catch (PDOException $e) {
        check("error", $e->errorInfo[1], $number);
        return;
    } catch (mysqli_sql_exception $e) {
        check("error", $e->getCode(), $number);
        return;
    }
    check("error", null, $number);
}

$row = [1, "z\u{e4}\u{1f600}'", "-12.50", "\0'\\", "2024-02-29 23:59:59.123", -9007199254740993];
foreach ([true, false] as $emulated) { // prepared by the driver, and by the server
    $open = fn() => new PDO("mysql:host=$host;port=$port;dbname=$database;charset=utf8mb4", "root", "",
        [PDO::ATTR_EMULATE_PREPARES => $emulated, PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_NUM]);
    [$one, $two] = [$open(), $open()];
    $one->exec("drop table if exists t");
    $one->exec("create table t (id int primary key, s varchar(50) not null, d decimal(10,2), b varbinary(20), at datetime(3), i bigint)");
    $count = fn($c) => (int)$c->query("select count(*) from t")->fetchColumn();
    $insert = $one->prepare("insert into t values (?, ?, ?, ?, ?, ?)");
    $one->beginTransaction();
    $insert->execute($row);
    check("not committed", $count($two), 0);
    $one->rollBack();
    check("rolled back", $count($one), 0);
    $one->beginTransaction();
    $insert->execute($row);
    $one->exec("savepoint a");
    $one->exec("delete from t");
    $one->exec("rollback to savepoint a");
    $one->commit();
    check("types", $two->query("select * from t")->fetch(), $row);
    fails(1062, fn() => $insert->execute($row));
    fails(1048, fn() => $insert->execute([2, null, null, null, null, null]));
    fails(1146, fn() => $one->query("select * from missing"));
    $update = $two->prepare("update t set d = d + ? where id = ?");
    $update->execute([1, 1]);
    check("rows changed", $update->rowCount(), 1);
    $id = $one->query("select connection_id()")->fetchColumn();
    $two->exec("kill $id");
    try {
        @$one->query("select 1");
        check("a killed connection", "answers", "fails");
    } catch (PDOException $e) {
        check("error", $e->errorInfo[1], 2006);
    }
    check("reconnected", $count($open()), 1);
}

$c = new mysqli($host, "root", "", $database, (int)$port);
$c->set_charset("utf8mb4");
$c->autocommit(false);
$c->query("update t set d = 0");
$c->rollback();
check("mysqli rolled back", $c->query("select d from t")->fetch_row()[0], "-11.50");
$s = $c->prepare("select i, s from t where id = ?");
$s->execute([1]);
check("mysqli prepared", $s->get_result()->fetch_row(), [$row[5], $row[1]]);
check("mysqli several", $c->multi_query("select 1; select 2") && $c->store_result() && $c->next_result(), true);
check("mysqli second", $c->store_result()->fetch_row()[0], "2");
fails(1062, fn() => $c->query("insert into t values (1, '', null, null, null, null)"));
echo "ok\n";
