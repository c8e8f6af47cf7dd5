import { Inject, Injectable, Module } from '@nestjs/common';
import { Catalogue } from './catalogue.mjs';
import { ContentTools } from './content-tools.mjs';
import { QuestionTools } from './question-tools.mjs';
import { TaskTools } from './task-tools.mjs';

Injectable()(Catalogue);
Catalogue.inject.forEach((token, index) => Inject(token)(Catalogue, undefined, index));

/** What the official conformance runner expects of a server: fixtures beside the real tools. */
export default class ConformancePlugin {}
Module({ providers: [ContentTools, QuestionTools, TaskTools, Catalogue] })(ConformancePlugin);
