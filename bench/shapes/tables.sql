-- The tables of the shapes. Rows are made by data.go. The tables at the end are for changes:
-- changed rows hardly matter to the reads of the others.

CREATE TABLE account (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, email VARCHAR(120) NOT NULL, name VARCHAR(80) NOT NULL, city VARCHAR(40) NOT NULL,
  active TINYINT(1) NOT NULL, visits INT NOT NULL, version INT NOT NULL, score DOUBLE NOT NULL, balance DECIMAL(12,2) NOT NULL, note VARCHAR(200),
  joined DATE NOT NULL, created DATETIME NOT NULL, changed DATETIME, UNIQUE KEY (email), KEY (created), KEY (city));

CREATE TABLE orders (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, owner BIGINT NOT NULL, parent BIGINT, status ENUM('new','paid','sent','done') NOT NULL,
  reference VARCHAR(32) NOT NULL, total DECIMAL(10,2) NOT NULL, quantity INT NOT NULL, due DATE NOT NULL, created DATETIME NOT NULL, closed DATETIME,
  detail JSON, note VARCHAR(200) NOT NULL, version INT NOT NULL,
  KEY (owner, created), KEY (status, created), KEY (created), KEY (parent), KEY (reference));

CREATE TABLE line (order_id BIGINT NOT NULL, number INT NOT NULL, product_id BIGINT NOT NULL, quantity INT NOT NULL, price DECIMAL(10,2) NOT NULL,
  PRIMARY KEY (order_id, number), KEY (product_id));

CREATE TABLE product (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) NOT NULL, category INT NOT NULL, price DECIMAL(10,2) NOT NULL, stock INT NOT NULL,
  KEY (category, price), KEY (name));

CREATE TABLE token (id CHAR(36) NOT NULL PRIMARY KEY, account BIGINT NOT NULL, body VARCHAR(200) NOT NULL);

CREATE TABLE digest (hash VARBINARY(16) NOT NULL PRIMARY KEY, size INT NOT NULL);

CREATE TABLE daily (day DATE NOT NULL, kind INT NOT NULL, hits INT NOT NULL, PRIMARY KEY (day, kind));

CREATE TABLE rate (amount DECIMAL(10,2) NOT NULL PRIMARY KEY, label VARCHAR(40) NOT NULL);

CREATE TABLE counter (name VARCHAR(40) NOT NULL PRIMARY KEY, n BIGINT NOT NULL);

CREATE TABLE job (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, queue VARCHAR(20) NOT NULL, state ENUM('ready','running','done') NOT NULL, run_at DATETIME NOT NULL,
  attempts INT NOT NULL DEFAULT 0, KEY (state, run_at));

CREATE TABLE spare (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, account BIGINT NOT NULL, kind INT NOT NULL, created DATETIME NOT NULL, body VARCHAR(100) NOT NULL,
  version INT NOT NULL DEFAULT 1, KEY (`account`), KEY (created));

CREATE TABLE scrap (id BIGINT NOT NULL PRIMARY KEY, account BIGINT NOT NULL, kind INT NOT NULL, created DATETIME NOT NULL, body VARCHAR(100) NOT NULL,
  version INT NOT NULL DEFAULT 1, KEY (`account`), KEY (created));

CREATE TABLE event (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, account BIGINT NOT NULL, kind VARCHAR(20) NOT NULL DEFAULT 'view', body VARCHAR(200),
  created DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, KEY (`account`));

CREATE TABLE team (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL);

CREATE TABLE member (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, team BIGINT NOT NULL, account BIGINT NOT NULL, role VARCHAR(20) NOT NULL,
  UNIQUE KEY (team, `account`), KEY (`account`), FOREIGN KEY (team) REFERENCES team (id), FOREIGN KEY (`account`) REFERENCES `account` (id));
