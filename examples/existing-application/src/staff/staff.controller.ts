import { Body, Controller, HttpCode, Post, UnauthorizedException } from '@nestjs/common';
import { IsString, Length } from 'class-validator';
import { Public } from './session.guard.js';
import { Sessions } from './sessions.js';
import { Staff } from './staff.js';

class SignIn {
  @IsString()
  @Length(1, 40)
  name!: string;

  @IsString()
  @Length(1, 200)
  password!: string;
}

@Controller('session')
export class StaffController {
  constructor(
    private readonly staff: Staff,
    private readonly sessions: Sessions,
  ) {}

  @Public()
  @HttpCode(200)
  @Post()
  async signIn(@Body() { name, password }: SignIn) {
    const employee = this.staff.signIn(name, password);
    if (!employee) throw new UnauthorizedException();
    return { token: await this.sessions.begin(employee) };
  }
}
