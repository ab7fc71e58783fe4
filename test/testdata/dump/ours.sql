-- What MySQL and MariaDB both have.
CREATE TABLE parents (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL DEFAULT '' COMMENT 'the "name"; it''s\\',
	UNIQUE KEY by_name (name)) COMMENT = 'parents; it''s';
CREATE TABLE kinds (id BIGINT PRIMARY KEY AUTO_INCREMENT, parent INT UNSIGNED,
	e ENUM('a', 'b''c', 'd,e') NOT NULL DEFAULT 'b''c', en ENUM('x', 'y'), s SET('r', 'w', 'x') NOT NULL DEFAULT 'r,x',
	b1 BIT(1) NOT NULL DEFAULT b'0', b8 BIT(8) DEFAULT b'101', b64 BIT(64),
	d DECIMAL(65, 30) NOT NULL DEFAULT 1.5, f FLOAT DEFAULT 2.5, dbl DOUBLE, z INT(8) UNSIGNED ZEROFILL,
	tiny TINYINT DEFAULT -1, small SMALLINT UNSIGNED, medium MEDIUMINT, huge BIGINT UNSIGNED DEFAULT 18446744073709551615, flag BOOL NOT NULL DEFAULT TRUE,
	y YEAR DEFAULT 2020, dt DATE DEFAULT '2024-02-29', tm TIME DEFAULT '12:34:56', dtm DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), ts TIMESTAMP NULL DEFAULT NULL,
	c CHAR(10) DEFAULT 'x', latin VARCHAR(200) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT 'it''s', bin VARCHAR(20) COLLATE utf8mb4_bin DEFAULT 'a\\b\n"', t TEXT, mt MEDIUMTEXT,
	j JSON, doubled INT GENERATED ALWAYS AS (id * 2) VIRTUAL, named VARCHAR(250) AS (CONCAT(bin, '!')) STORED, `odd ``name``` INT DEFAULT NULL,
	CONSTRAINT positive CHECK (d > 0), KEY by_e (e), KEY by_named (named), KEY by_t (t(10)), UNIQUE KEY `odd``key` (`odd ``name```),
	CONSTRAINT of_parent FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(100));
CREATE TABLE bytes (id INT PRIMARY KEY, short VARBINARY(256), blobs BLOB, longer LONGBLOB, bits BIT(64));
CREATE TABLE keyless (a INT, b TEXT);
CREATE TABLE self (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES self (id));
CREATE TABLE zeros (id INT PRIMARY KEY AUTO_INCREMENT, v INT);
CREATE VIEW joined AS SELECT k.id, p.name, k.e FROM kinds k LEFT JOIN parents p ON k.parent = p.id WHERE k.id > 0;
CREATE VIEW before_joined AS SELECT * FROM joined;
DELIMITER ;;
CREATE TRIGGER kinds_ai AFTER INSERT ON kinds FOR EACH ROW BEGIN INSERT INTO log (what) VALUES (CONCAT('insert; ', NEW.id)); END;;
CREATE PROCEDURE add_up(IN a INT, OUT b INT) BEGIN SET b = a + 1; SELECT 'x;y' AS r; END;;
CREATE EVENT tidy ON SCHEDULE EVERY 1 DAY DO DELETE FROM log WHERE id < 0;;
DELIMITER ;
INSERT INTO parents (name) VALUES ('one'), ('two''s'), ('tab\tnl\nnul\0bs\\');
INSERT INTO kinds (parent, e, en, s, b1, b8, b64, d, f, dbl, z, tiny, small, medium, y, dt, tm, ts, c, latin, t, mt, j) VALUES
	(1, 'a', 'y', 'r,w', b'1', b'11111111', 18446744073709551615, 12345678901234567890123456789012345.123456789012345678901234567890, 0.1, 1.7976931348623157e308, 42, -128, 65535, -8388608,
		2155, '0001-01-01', '-838:59:59', '2038-01-19 03:14:07', '', 'é', 'ünï 日本 😀', '%_\\%', '{"a": [1, 2.5, "x\\ny"], "b": null}'),
	(NULL, 'd,e', NULL, '', b'0', NULL, NULL, 0.000001, -3e30, -0.1, NULL, 127, 0, 8388607, 1901, '9999-12-31', '838:59:59', '1970-01-01 00:00:01', NULL, '', '', NULL, '[]');
INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (NULL, NULL);
INSERT INTO self VALUES (3, NULL), (2, 3), (1, 2);
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO zeros VALUES (0, 1), (5, 2);
-- What only MySQL has, or has in another form.
CREATE TABLE ours (id INT PRIMARY KEY, who VARCHAR(40) DEFAULT (CONCAT('u', 1 + 1)), doc JSON DEFAULT (JSON_ARRAY(1, 'x')), day DATE DEFAULT (CURRENT_DATE),
	e ENUM('a\\', 'é', 'it''s') DEFAULT 'a\\', must INT AS (id + 1) STORED NOT NULL COMMENT 'it''s', early INT AS (late + 1), late INT,
	h INT, old INT, place POINT, around GEOMETRY SRID 4326, b BINARY(3) DEFAULT 'ab', UNIQUE KEY (h) USING HASH, CHECK (old <> 7) NOT ENFORCED) COLLATE utf8mb4_0900_ai_ci;
INSERT INTO ours (id, late, place, around) VALUES (1, 5, POINT(1, 2), ST_GeomFromText('POINT(1 2)', 4326));
INSERT INTO ours () VALUES (2, DEFAULT, DEFAULT, DEFAULT, 'it''s', DEFAULT, DEFAULT, 7, 8, 7, NULL, NULL, NULL);

CREATE TABLE computed (id INT PRIMARY KEY, name VARCHAR(20), n INT, KEY plain (n), KEY lowered ((LOWER(name))), KEY sums ((n + id))) COMMENT='computed; it''s';
INSERT INTO computed VALUES (1, 'Anna', 1), (2, 'BERT', NULL);
