PRAGMA foreign_keys = OFF;
BEGIN;
ALTER TABLE members RENAME TO old_members;
ALTER TABLE loans RENAME TO old_loans;
DROP VIEW late;
DROP TABLE scratch;

CREATE TEMP TABLE person AS
  SELECT id, lower(trim(email)) AS email, substr(joined, 7, 4) || '-' || substr(joined, 4, 2) || '-' || substr(joined, 1, 2) AS joined FROM old_members;
CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT, email TEXT NOT NULL UNIQUE, joined TEXT);
INSERT INTO members
  SELECT p.keeper, o.name, p.email, p.joined
  FROM (SELECT min(id) AS keeper, email, min(joined) AS joined FROM person GROUP BY email) AS p JOIN old_members AS o ON o.id = p.keeper;

CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT NOT NULL, author TEXT NOT NULL, UNIQUE (title, author));
INSERT INTO books (title, author) SELECT DISTINCT trim(title) AS t, trim(author) AS a FROM old_loans ORDER BY a, t;

CREATE TABLE loans (
  id INTEGER PRIMARY KEY,
  member_id INTEGER NOT NULL REFERENCES members (id),
  book_id INTEGER NOT NULL REFERENCES books (id),
  lent TEXT,
  returned TEXT,
  CHECK (returned >= lent)
);
INSERT INTO loans
  SELECT l.id, m.id, b.id,
    substr(l.lent, 7, 4) || '-' || substr(l.lent, 4, 2) || '-' || substr(l.lent, 1, 2),
    CASE WHEN l.returned <> '' THEN substr(l.returned, 7, 4) || '-' || substr(l.returned, 4, 2) || '-' || substr(l.returned, 1, 2) END
  FROM old_loans AS l JOIN person AS p ON p.id = l.member_id JOIN members AS m ON m.email = p.email
    JOIN books AS b ON b.title = trim(l.title) AND b.author = trim(l.author);

CREATE VIEW out_now AS
  SELECT l.id AS loan_id, m.name, b.title, l.lent FROM loans AS l JOIN members AS m ON m.id = l.member_id JOIN books AS b ON b.id = l.book_id
  WHERE l.returned IS NULL;
DROP TABLE old_loans;
DROP TABLE old_members;
PRAGMA user_version = 2;
COMMIT;
