-- Tables come and go, change, and tell what they are.
create database shop;
use shop;
create table customers (
  id int not null auto_increment primary key,
  name varchar(40) not null,
  email varchar(60) default null,
  credit decimal(10,2) not null default 0.25,
  born date,
  unique key by_email (email),
  key by_name (name)
);
create table if not exists customers (id int primary key);
create table customers (id int primary key);
create table orders (
  id bigint primary key auto_increment,
  customer int not null,
  placed datetime not null,
  state enum('new','paid','sent') not null default 'new',
  note text,
  key by_customer (customer, placed),
  constraint orders_customer foreign key (customer) references customers (id)
);
create table items (
  order_id bigint not null,
  line int not null,
  sku char(8) not null,
  quantity int unsigned not null check (quantity > 0),
  price decimal(8,2) not null,
  primary key (order_id, line),
  constraint items_order foreign key (order_id) references orders (id) on delete cascade
);
show tables;
select table_name, column_name, ordinal_position, column_default, is_nullable, data_type, column_key, extra
  from information_schema.columns where table_schema = 'shop' and table_name = 'customers' order by ordinal_position;
select index_name, seq_in_index, column_name, non_unique from information_schema.statistics
  where table_schema = 'shop' and table_name = 'orders' order by index_name, seq_in_index;
select constraint_name, column_name, referenced_table_name, referenced_column_name from information_schema.key_column_usage
  where table_schema = 'shop' and table_name = 'items' order by constraint_name, ordinal_position;
alter table customers add column city varchar(30) after email;
alter table customers add column vip tinyint not null default 0;
alter table customers add index by_city (city);
alter table customers modify column city varchar(50) not null default 'nowhere';
alter table customers rename column vip to is_vip;
select column_name, column_type, is_nullable, column_default from information_schema.columns
  where table_schema = 'shop' and table_name = 'customers' order by ordinal_position;
insert into customers (name) values ('first');
select id, name, email, city, credit, is_vip from customers;
alter table customers drop column is_vip;
alter table customers drop index by_city;
create index by_born on customers (born);
drop index by_born on customers;
drop index by_born on customers;
alter table customers drop column missing;
rename table items to positions;
show tables;
alter table positions rename to items;
create view rich as select id, name, credit from customers where credit > 100;
create or replace view rich as select id, name, credit from customers where credit > 50;
select table_name, table_type from information_schema.tables where table_schema = 'shop' order by table_name;
drop table customers;
drop view rich;
drop view rich;
drop table if exists nothing;
drop table nothing;
truncate table items;
create table orders2 like orders;
select count(*) from orders2;
create table summary as select id, name from customers;
select * from summary;
drop table items, orders, orders2, summary;
drop table customers;
show tables;
create database shop;
create database if not exists shop;
drop database shop;
drop database shop;
use shop;
