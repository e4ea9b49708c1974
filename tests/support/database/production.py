"""The schema and rows of a production database. Imported by full name."""

PRODUCTION_SCHEMA = """
CREATE EXTENSION vector;
CREATE TABLE question_answer (
    id bigint PRIMARY KEY, question text, embedding vector, answer text, confluence_url text, score integer,
    user_id bigint, created_at timestamp
);
CREATE TABLE chunk (id bigint PRIMARY KEY, confluence_url text, text text, embedding vector);
INSERT INTO chunk (id, confluence_url, text) VALUES
    (10, 'https://c.example/pages/viewpage.action?pageId=1', 'Стипендия назначается студентам приказом ректора.'),
    (9, 'https://c.example/pages/viewpage.action?pageId=2', 'Общежитие находится рядом с корпусом на улице Ленина.'),
    (8, 'https://c.example/pages/viewpage.action?pageId=3', 'Библиотека выдаёт книги по студенческому билету.');
INSERT INTO question_answer (id, question, answer, confluence_url, score, user_id, created_at) VALUES
    (3, 'Кому назначается стипендия?', 'Студентам.',
     'https://c.example/pages/viewpage.action?pageId=1&preview=x', 5, 7, now()),
    (1, 'Где находится общежитие?', 'На Ленина.', 'https://c.example/pages/viewpage.action?pageId=2', NULL, 7, now()),
    (2, 'Как взять книги в библиотеке?', 'По билету.', 'https://c.example/pages/viewpage.action?pageId=3', 1, 8, now()),
    (4, 'Кто ректор?', NULL, 'None', NULL, NULL, now());
"""
